"""Files that several tests of the curation read."""

from __future__ import annotations

import pytest

EXAMPLE = """<?xml version="1.0" encoding="utf-8"?>
<document id="900001">
  <s id="1">
    <time id="T1S" value="00:00:02,000" />
    <w id="1.1">-</w>
    <w id="1.2">You</w>
    <w id="1.3">'re</w>
    <w id="1.4">late</w>
    <w id="1.5">.</w>
  </s>
  <s id="2">
    <w id="2.1">-</w>
    <w id="2.2">Traffic</w>
    <w id="2.3">.</w>
    <time id="T1E" value="00:00:04,100" />
  </s>
  <s id="3" emphasis="true">
    <time id="T2S" value="00:00:09,101" />
    <w id="3.1">And</w>
    <w id="3.2">so</w>
    <time id="T2E" value="00:00:10,000" />
    <time id="T3S" value="00:00:10,200" />
    <w id="3.3">it</w>
    <w id="3.4" initial="begns">begins</w>
    <w id="3.5">...</w>
    <time id="T3E" value="00:00:12,000" />
  </s>
  <meta>
    <subtitle><language>English</language><confidence>0.9</confidence></subtitle>
    <conversion><sentences>3</sentences><tokens>13</tokens></conversion>
  </meta>
</document>
"""


@pytest.fixture(scope="session")
def example() -> str:
    """The file of the specification (xie2021, section 1.2): three sentences in three blocks."""
    return EXAMPLE
