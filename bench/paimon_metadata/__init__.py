"""Paimon tables of metadata alone, made once and kept in bench/.cache."""
