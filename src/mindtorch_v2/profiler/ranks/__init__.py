"""Many ranks, one answer: recordings become digests, digests a job, and a job is asked.

from mindtorch_v2.profiler import ranks
answers = ranks.load("out/")
print(answers.text())
"""

from .answered import JobAnswers
from .digest import Digest, make_digest
from .job import Job, LeftOut, merge
from .loading import digest, load

__all__ = ["Digest", "Job", "JobAnswers", "LeftOut", "digest", "load", "make_digest", "merge"]
