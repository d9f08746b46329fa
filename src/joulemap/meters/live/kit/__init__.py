"""A test kit: trees of sysfs that a known power function drives, and faults on demand; for us and for users.

Must not know any driver: what it writes is what the kernel would.
"""

from joulemap.meters.live.kit.fake_tree import FakeTree, TreePlan
from joulemap.meters.live.kit.faults import KitFault, KitFaultKind

__all__ = ["FakeTree", "KitFault", "KitFaultKind", "TreePlan"]
