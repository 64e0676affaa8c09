/** The MCP server over HTTP that everything is measured against. */
import { startHttpServer } from '../tests/fixtures/http-server.ts'

const { url } = await startHttpServer()
console.log(JSON.stringify({ url }))
