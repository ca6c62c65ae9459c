"""The modules that read a file which is not clean, or find places in it; ``document`` loads them together."""

from hccl_tools.document import encoding_problem, spans, strict_parser, syntax_problem

__all__ = ["encoding_problem", "spans", "strict_parser", "syntax_problem"]
