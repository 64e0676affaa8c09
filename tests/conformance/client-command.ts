/**
 * What the suite runs as the client under test, once for each scenario and all of them at once, where there is no curl:
 * it only passes on what is wanted to the driver at the first address, which does it in a process that has everything
 * loaded, and waits.
 */
import { request } from 'node:http'

const [, , driver = '', url = ''] = process.argv
const {
  MCP_CONFORMANCE_SCENARIO: scenario = '',
  MCP_CONFORMANCE_PROTOCOL_VERSION: version = '',
  MCP_CONFORMANCE_CONTEXT: context = '',
} = process.env

request(driver, { method: 'POST' }, (response) => {
  response.pipe(process.stderr)
  if (response.statusCode !== 204) process.exitCode = 1
}).end(String(new URLSearchParams({ scenario, url, version, context })))
