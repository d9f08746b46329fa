from joulemap.meters.live.marking import Mark
from joulemap.meters.live.marking import instant as instant
from joulemap.workflow import adapters as adapters
from joulemap.workflow.api import Measurement as Measurement
from joulemap.workflow.api import measure as measure

__version__: str
mark = Mark
