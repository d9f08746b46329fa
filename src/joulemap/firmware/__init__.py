"""From a model file to a reconciled power run: wire, toolchains, boards, engines, probes, transports and stages.

``csrc`` holds the C that is compiled. Floors inside: stages > engines | probes | transports > boards > toolchains >
wire. Must not know how energy is attributed, shown or saved.
"""
