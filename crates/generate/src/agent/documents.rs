//! The machine-readable description of the interface (OpenAPI 3.1).

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::api::{Change, NewRun, Problem, RunView, StatisticsView, Status};

/// The description of an agent's interface.
pub fn openapi() -> Value {
    let mut schemas = SchemaSettings::draft2020_12()
        .with(|s| s.definitions_path = "/components/schemas".into())
        .into_generator();
    let of = |schema: schemars::Schema| schema.to_value();
    let status = of(schemas.subschema_for::<Status>());
    let new_run = of(schemas.subschema_for::<NewRun>());
    let run = of(schemas.subschema_for::<RunView>());
    let change = of(schemas.subschema_for::<Change>());
    let statistics = of(schemas.subschema_for::<StatisticsView>());
    let problem = of(schemas.subschema_for::<Problem>());
    let definitions = schemas.take_definitions(true);
    let content = |schema: &Value| json!({ "application/json": { "schema": schema } });
    let gives = |code: &str, what: &str, schema: &Value| json!({ code: { "description": what, "content": content(schema) } });
    let id = json!([{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 0 } }]);
    let flows = json!([
        id[0],
        { "name": "after", "in": "query", "schema": { "type": "integer", "minimum": 0 },
          "description": "Number of the first flow that is wanted. Those before it have arrived, and are forgotten." },
    ]);
    let mut paths = json!({
        "/v1/status": { "get": {
            "summary": "How the agent stands", "responses": gives("200", "its status", &status),
        } },
        "/v1/runs": { "post": {
            "summary": "Ask for a run. It is started by a change, and ends when its lease is not renewed",
            "requestBody": { "required": true, "content": content(&new_run) },
            "responses": gives("201", "the run", &run),
        } },
        "/v1/runs/{id}": {
            "parameters": id,
            "get": { "summary": "How a run stands", "responses": gives("200", "the run", &run) },
            "patch": {
                "summary": "Start, stop, change or renew a run",
                "requestBody": { "required": true, "content": content(&change) },
                "responses": gives("200", "the run", &run),
            },
            "delete": {
                "summary": "End a run and forget it",
                "responses": { "204": { "description": "it is gone" } },
            },
        },
        "/v1/runs/{id}/statistics": { "parameters": id, "get": {
            "summary": "What a run counted so far", "responses": gives("200", "its counts", &statistics),
        } },
        "/v1/runs/{id}/flows": { "parameters": flows, "get": {
            "summary": "Transfers that are over",
            "responses": { "200": {
                "description": "Rows of 104 bytes, little-endian: datagrams (u8), reused (u8), outcome (u8: 0 done, 1 unfinished, 2 failed), 0, session (u32), due, begun, connected, first, end (u64: nanoseconds since the start), up, down (u64: bytes), rtt (u32: us, 4294967295: none), again (u32), source, destination (16 bytes each: IPv6, or IPv4 mapped to it)",
                "headers": { "swell-first": {
                    "description": "Number of the first row. If it is beyond `after`, those between are lost",
                    "schema": { "type": "integer" },
                } },
                "content": { "application/octet-stream": {} },
            } },
        } },
        "/metrics": { "get": {
            "summary": "Counts of all runs, for Prometheus",
            "responses": { "200": { "description": "text format 0.0.4", "content": { "text/plain": {} } } },
        } },
        "/openapi.json": { "get": {
            "summary": "This description",
            "responses": { "200": { "description": "OpenAPI 3.1", "content": { "application/json": {} } } },
        } },
    });
    let wrong = json!({ "description": "an error", "content": content(&problem) });
    for item in paths
        .as_object_mut()
        .into_iter()
        .flat_map(|p| p.values_mut())
    {
        for operation in item
            .as_object_mut()
            .into_iter()
            .flat_map(|i| i.values_mut())
        {
            if let Some(responses) = operation.get_mut("responses") {
                responses["default"] = wrong.clone();
            }
        }
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "swell agent",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Live traffic between hosts. Errors are JSON objects with a text `error`: 400 for what makes no sense, 401 without a token, 403 for what the token or the agent does not allow, 404 for what is not there, 405 for a method that a resource does not have, 409 for what cannot be now, 413 for what is too long, 500 for what the agent's machine has no means for.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    });
    document["components"]["schemas"] = definitions.into();
    document
}
