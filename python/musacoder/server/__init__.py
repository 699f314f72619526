# SPDX-License-Identifier: Apache-2.0
"""`musacoder serve`: MooreEval over HTTP (docs/serve.md).

    questions  requests, checked
    child      the verifier: a child process that judges, and the queue in front of it
    store      jobs on disk
    jobs       questions whose replies are fetched later
    accounts   tokens and their quotas
    gate       which requests are accepted
    stats      counters, for /metrics and for the page
    routes     the HTTP routes; compat has the forms of other projects
    __main__   options, start and end

HTTP is aiohttp's.  Everything but the store's thread runs on one event loop, so nothing is locked.
"""
