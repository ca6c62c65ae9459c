"""What several test modules share: stand-ins for the Ascend tools and a way to run the command line."""
