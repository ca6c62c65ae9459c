"""What is known about the messages of HCCL and of the programs around it: one record per message."""
