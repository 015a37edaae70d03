"""What is felt, its side, the cause words and danger, read from one file by ONNX Runtime: no torch, no transformers."""
