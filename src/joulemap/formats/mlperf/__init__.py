"""Power logs of MLPerf submissions: Inference folders and the runners of MLPerf Tiny."""
