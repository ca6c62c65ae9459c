"""The modules that read a file which is not clean; ``document`` loads them together."""

from hccl_tools.document import encoding_problem, strict_parser, syntax_problem

__all__ = ["encoding_problem", "strict_parser", "syntax_problem"]
