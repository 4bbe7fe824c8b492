"""Answers from a job, one question a module; all are functions of the job and its matched communications."""
