"""Reference vectors of all-MiniLM-L6-v2, against which every graph is tested when it is opened.

Made once with the public float32 weights (``model.safetensors``, SHA-256
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db) in PyTorch, mean pooling over
all tokens, unit length; stored as little-endian float16, whose rounding moves a cosine by less
than 1e-6. The texts were chosen because a processor whose 8-bit products saturate gets them
visibly wrong.
"""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt

TEXTS: tuple[str, ...] = (
    "Mira: I moved from Berlin to Lisbon last Saturday, and the flat is still full of boxes!",
    "My sister adopted two greyhounds; the older one, Juno, is afraid of thunder.",
    "Der Zug nach München fährt heute zwanzig Minuten später ab.",
    "明日の会議は午後三時からです。",
    (
        "Tea. Mira: I moved from Berlin to Lisbon last Saturday, and the flat is still "
        "full of boxes! The invoice of 3 March 2024 over 1,240.50 euros was paid twice by"
        " mistake. Haha, yes, exactly. Can you recommend a quiet restaurant near the "
        "harbour for six people on Friday evening? My sister adopted two greyhounds; the "
        "older one, Juno, is afraid of thunder. We decided to postpone the release until "
        "the migration of the billing service has been rehearsed on a copy of production."
        " def mean(values): return sum(values) / len(values) Wow, that is amazing! "
        "Congratulations on the new job, I am so proud of you! Der Zug nach München fährt"
        " heute zwanzig Minuten später ab. 明日の会議は午後三時からです。 Olaf: I ran my first marathon "
        "in four hours and eleven minutes, and my knees have not forgiven me since. "
        "[shares image: a runner with a medal in front of a bridge] Never put oregano in "
        "it, please. The museum is closed on Mondays. I used to be vegetarian, but since "
        "the surgery I eat fish twice a week because my doctor insisted on it. Where did "
        "Tomas say he keeps the spare key? Thanks! Talk to you soon, bye! password reset "
        "link expired again, third time this week, still no answer from support She plays"
        " the cello in the city orchestra and teaches children on Wednesday afternoons. "
        "https://example.org/a/b?c=d#e"
    ),
)

_ENCODED: tuple[str, ...] = (
    (
        "2S27ppAsNiwyHz+g2qpbplOsXqjSoB2nHKhBKcAgA6iarK6se6m5KQ8kuaNRpS0pnCu4LNMky6Y1qousmR0UJ+6e"
        "vCfPLQSlZipWrF0rJJp9rIip2B28LlMl6yFULYuqDhlyKZMsjir1lxYk6aoLJbQr+CpaKk4syiyQJWCpqyjsqMmo"
        "16l4KsWpkqiFJOCf8CoyK2wvZakcLFytW6KNLJ6tQiB2qmgrwawMrE6P/CalmpKqBS7WomqqCC7Lpg2py63vLA2r"
        "nisjqvwo7CymIxitd6ItKx6k36yGmimoDq6GKzopQKjMKdgokaaIqnkGXy3jqmQg9CdCrUkpbC0AgLmtxCZUqUMw"
        "Kyjpqjip7Su1qZ8sBKrjnRusLamLp/UfKiicDyaq+aWxHEwpjaUIpOIgEi+nFT+ov6FxKcCmUiF7LM0d1aomKj+k"
        "PafmpgkqzilwptMjkC0gLUejsamMpNkqfqwoqeil865fLOcpsaVXrGmk5yxEoxwthyoepqUiEChRqcmiDiC+mpIg"
        "op9+KQypWiAVrIyreqLOJ4spx6uNne4lQY71Jgkv9pgDJT+pKq2rKlOpSSZkJfOwqaQAAGosiaptrwike6JSKuuk"
        "BCftD0IlErCPrAsv8qDIoggsIy6VrHqkQSrfqiIpDK0qqsWuU596onEpGac4Ix6rya9XrCypLaMWLOWdKambqPIp"
        "qqgzq6+sOSu5Jkepiqr3pH4ezK58K7OgFKglqdWpGC1VJfmmmRCsGD+onyk7pIWpWis4or0lDabApCKiQi51Hoqt"
        "sCU4qwEkIyi/Ka0sQScFJP4koip0oGUt36ZNorakNyjhK3WoP6UgFlSoNRgAgJUikyhZp/goeihTqrcmODCsq7gf"
        "7aheKuSuXyipLCUsAx/9Lc+qXSl7IYAsgRdspJ2mTyhfoXso0iphrHUrpqNSKSMp+qtdpwSUxCnsqb6dgKGcsAWo"
        "o4qLoJITFKc9qdAir6i/qu+hNaPCMMAroKNRmJMhGyU2LxmlOCn1rL2g"
    ),
    (
        "J6iLrPwteyTNpMGgfCO4q4Ar66qyKnmqZy1orAqulSdoHeenNx8ZokStv6HLKSCf+qrIKcatEqleIsyZWyJSqMyo"
        "six5oYutJSSpI4ot2yVUGOAZv6VJr+CrRaYkrJavKSCcqykmsKyKHnamYCeeoJysgyjAK/khYKoWL6qi3idTqxUk"
        "lKxnKCUuTyIDKI8r9SaoKM6kyCq5Jk2mXShIoW+sAKe0n0AuDCsLKfKd/qjNqw0q4yj3rlol6SqRKGQlQxx8rTip"
        "4CILrgyVMi3XLGslk6NfrWmuxaVMqs4djq6JK2wq/6PZqUqriqcAJB0giylcpCWmFqy/JXKeSakAgA4l8iojqqyp"
        "nytLqLKfN6X9qIsklqswKBwgrK/EI6UoIKkiLCEsm6M8nU0p2CcQrGUo6KdAo7aqihysKlOsCSCTKYsika0QIYmi"
        "Aq2/qigrcimXnB+raizQCJklvimvrG+dSqv4KBCp6Sp3qBUoRiy4LisRRiy+JpEkzahdMM2t9DDXrICowaZvplGf"
        "rSQWrQedL6rXLEChrCg3JYAoPrBmIJckth69L0AqjRkLqgAlta54LdooXKXyLFWoxKIAAByqTxjXppoiR6FoKTim"
        "QCzqLDkuYagvK+wmKSiCKDMVgCdzLoSkNK5prbceb6R1Lq2YUStIj8yQpKOtr7uouqe6LLohPymeKDAn+qnaHSep"
        "ASp+rGYrQ5woK+Ut2i9YJ7Mkip52kheaDKheKAmZ9qnGLhat+yXyIL6i0aicI3UubqkpqMyuTh6qo0WtoinoIVKo"
        "raiNJf8mg6HmrIwqmaMDrjYlnBibHNmihqTxJa8kriT3GUenFCuUJAaqZ6gAgDstlCamJwod6iuhJM4g2iVnrUmk"
        "ZR1TrOIoniUXLL8ray3mlI2ogaJeqAgsmS3IrHQdaa3HJvWozahNqwquLiSKq24e46ifp/8sRqj0Jrcc2CROKyKr"
        "fp9vpFYuAC+9rpUc/SShq0mfbB7QovOouqC0qHWp1CfzI6gGYyOaKdAp"
    ),
    (
        "BazFLBosUqWtqnEwby4JMIcspSZxpRSsl6nKKO8ezac4rfkgXKJSq4aVxifgo8Kn6B6bqkMoWiXVKsAiSy58LToQ"
        "yZ9FKUqr+R8Lqmel94wepRgr4KHWqvQn1iX8LyApra2yJymoDa6xLwOqhR1MJb6pFiiTJFGqeqJLmh6wbBwUqMeo"
        "py2Dqn6ojylbHISubajzISetmawfFvAc6aJkrfMp4ajwKOkomiUjnA6e3i1oF0+nlKUwINEaKgz2qb2g2qdrJF4n"
        "4CieJVcp2x+fKWepeo8DqbgrbK1+Lu2j7CB7Ig2pIiFnnv0onLC3poOsnKWVpmYaKyseoYQjqSMAAHettKjap4Cs"
        "WKFtpLsltSS7KEEhnSLRp8AY56u4plYk1So2pxufaKGDrG0mgCjDJBQq7CZNLBylf6gMqNktvyapqnQmBh+Qq0eq"
        "GyfcJl+pbyuoqUunepzuLuMsAKo7HDMq8qoHLVco06jbKQ2nKy2VpO0dHCMsLLKkkC28ph+d25YNqScpppxoJc4p"
        "0yA0oYgvzSa2DOyaVaoQLlWrnaEBrI6tmR++rbmlXKzXKVikZKzhKwWdPyi5pfQsGqQAgFygFiicq8csU6g6Kcao"
        "rCM/q/YkN6ycJo8vA6vgq/WkWyprrW6mgKV0kDWq6igJJbutqCBBL1Mi5qenJ1QoJih2mEWwF6hmoT8mjSwdJA+n"
        "iafoJLyoGyhDLaQil65CrdqwCa24G2sgmC2UrfUsgiQeoWGwzirlJwYwzizhKJge8ShVrB6oXarBJzgtwypCLQgp"
        "wpoQr64giyHTK30S/aRfqIAb/BfAK7WpvKmoIP0foynip7WiWC57KqSYGqgAgH0oMa62qCEkkSDWrcOtUqlApG4s"
        "i6jeqZmp9y0cqK0ocw4xqt+fUyJ0LJgQMakOpSkpV5xkp8QgOawBpM2ovSrnLHcoIqMvJOUsVKVdq9emLKOwqZgs"
        "7aZLpkWudCYWpTws6ivTpQKZlqmaI+MquCW9qHurXyafGwInzCAasFAs"
    ),
    (
        "xBS/MGQq2yuqp9YnDTAYKMkcl6ywKpataKQEHiaiXavxpbki66wyHgelaKiYIrIpPqmtLBkfaiTKLamkhKx4IB8v"
        "YqZvJIAdFyC1qvUT0ZpZqFUgdSpuqGUj76TsIVqdyiI6Kd2rF6dvji+lBZyjLGMh2qdMJQqXZal+n1IjayqiIk0k"
        "ORY6KY0gyKlrEk4mqSniqUynsSWcK8eswamgJ/uq4qTtqUup+pWDI3ytkSqpqY4mtqoPKLaqBKVgrr8pU6dNoKsV"
        "4yYhKrwspyb9KZykSqpIKo6l2ajCI2OsBa4FrK+t8SvAJEUv2ihWqHylQippo1mq+a6arUAlRjEAADKmJazjpWSl"
        "FacGHuQmJyecqVilxKoKqMAkDanNqgaj846XoJYv3qvxLDyta6avqhwrnakAJs4h8KyfIagqkCpYpRctASfUKsot"
        "FDAyKlEd8SW/qsysBq4bMP2kMCSjJO0ttB9rI12gVqhDLlovXKQTkfeJU60sJgeZCaK/rSkszqo7oSKgz6oFJQmk"
        "KKspIWQr8iQPr+0hU6kbKGEi0i30KrWrVis2J5goCiz7KjooSyHbHXOqJijzLZstKSAAgJwssCz6pq6orqxmoD0k"
        "dSbfqygoMSSRqm4oU6dZqJUmICnDKRKNgCluHzWrOax2puEr8CFXL4ch66SBoWyoKawAJI8kIRW0iwWlOa7SJiso"
        "bSgkJmQsZyevHSkwrqkzqYmswyhALBWu9CgJqE4ppSkJnEogj6MyoTsduq1HKHKdSyamresmFC3hKVIZvC5hH1Wq"
        "hphtr9+eAarNKEkpSSp5Fh4rySW8qQ2q7aSqqiImyqOVHTmtBy0BGaOrTJ8AgGCsWLH9qtqmpiPnGNiq+qoNKUyg"
        "Sy/WKbqrdyaTqfWauKFaqFYskKazLAOqEynXqZSnoSzGp74tAKdUpaaqtqI8mAGjx62CpXmZYJpgrWgiPy37I72e"
        "l5xsKaCpaqnCKOmq6Kx0q3sZMyqbp06ooC2eJGksNyZCKf+qiy1Tr82m"
    ),
    (
        "H6zMLH4uzxsLqygsdyu9KgQbwKtUJw6usKe/GpCtIawHKDimsbDwLXaoDK4BHGkmt6HqKdGotaixrKqlra0ALDcp"
        "ch0SKY4lFyytromghCy2p6OkVaxwKO8qQCpDLB2sI6uxKxaqUCS0JcUl3a0vGSelDiY8pdcZfqNmJDGqICyHrA+s"
        "fqwoIaumHCdJJBSsnCmiIAwqF6SbKoSwCyaQqQUXc6plqlEjZqLoqlAnLCd5LAWj/ypUKu2ToKj0KnAptKVoLqSo"
        "Si3sKxQtvS7YqZGiBasfGIUt+aULo6epFqU7LHmntKbOLeMe2qHvKJEoxitQGG2pyiOdqpggFDAAADyqFqn6oqWn"
        "silBpc+puCfQqyInjqptnaimsawkqscoOShcnL4mFScQLzarpBoxqMEnWCc/JUqtGyZ9JJysxCl2pBWsdauVq+op"
        "yaUGqJms3KA9HFGk0iWzKWao2RttKFMu/qdBqDmg2iO0LG2nOCxhGpgohqhmpJor2Sx5KfonmBKNqoSrmaAXKhqh"
        "lKhOHRYuaKnGpHAnzqATnxYgYabcJJUAxasiKgEoWy2zL+iu+CPMKsSlMxyzqXaq0KsAgKotMCC7p/aeeZkQJ5qs"
        "iiY8KUGjWay/nR4q66j/rA6kGSpaKSOtIJiFpBEq/qVhK4yshS6NLFwnhapTq0Okkamlp/SrYyXWKD0sN6h/rCYr"
        "9it2raSjlixQKkAmApZWrF+eI6zzLQCvYqorpeUpSyTHD5ewRazBpy2k4Sj9ldsoNij5qq2klKk1Ir0nD6keLCWo"
        "bar/D6gniyNNJB8oIyDrpvmrlyxtp0IiLKy5JgolnyWuLGanAys9qKMlISgBgOEtNCE5qVEtAypnsSCtfaSqqvwt"
        "myLlI72q3Kb6Fhos1CrqpY2qN59KKrEqaqiurAybFpxNqsIvLKNZp3Elf6mpKJqiz6aFreIq46eoqIojeanurxes"
        "FSn4Bsef46tfI3Am3aV7qw+cZik+K0gouyjTH+IooAyWLT8prpzBsL4m"
    ),
)


def reference_vectors() -> npt.NDArray[np.float32]:
    """Return the references, shape (len(TEXTS), 384), float32, unit length to about 1e-4."""
    rows = [np.frombuffer(base64.b64decode(text), dtype="<f2") for text in _ENCODED]
    return np.stack(rows).astype(np.float32)
