# SPDX-License-Identifier: Apache-2.0
"""The server that openenv.yaml names: musacoder.openenv's, under the name that OpenEnv expects."""

import argparse

import uvicorn
from musacoder.openenv import app


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves the environment.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    uvicorn.run(app, host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
