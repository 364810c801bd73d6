"""What may match: facts about files in, verdicts out. Pure: Arrow in, Arrow out."""
