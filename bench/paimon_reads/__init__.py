"""The table that reading is measured on, and Paimon's Java core as a peer."""
