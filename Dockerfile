# Holdfast for deployments: locked packages by hash, the wheel without dependencies, an ordinary user, a read-only installation.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY requirements requirements
COPY src src
RUN python -m venv /opt/holdfast \
    && /opt/holdfast/bin/pip install --no-cache-dir --require-hashes --requirement requirements/run.txt \
    && /opt/holdfast/bin/pip install --no-cache-dir setuptools==84.2.1 \
    && /opt/holdfast/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim
COPY --from=build /opt/holdfast /opt/holdfast
RUN useradd --create-home office
USER office
WORKDIR /data
ENTRYPOINT ["/opt/holdfast/bin/holdfast"]
CMD ["demo"]
