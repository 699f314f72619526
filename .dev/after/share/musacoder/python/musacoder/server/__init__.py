# SPDX-License-Identifier: Apache-2.0
"""`musacoder serve`: MooreEval over HTTP (docs/serve.md).

    questions  what a request may ask
    child      the verifier: a child process that judges, and the queue in front of it
    store      jobs on disk
    jobs       questions whose replies are fetched later
    accounts   tokens and their quotas
    gate       which requests are looked at
    stats      what is counted, for /metrics and for the page
    routes     the HTTP of it; compat has the forms of other projects
    __main__   options, start and end

HTTP is aiohttp's.  Everything but the store's thread runs on one event loop, so nothing is locked.
"""
