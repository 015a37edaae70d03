"""Pages and pictures made from runs: published tables beside our numbers, charts, the frame of every page."""
