"""The page of imported recordings: records that the workflow fills, and builders of its parts. No file is read here."""
