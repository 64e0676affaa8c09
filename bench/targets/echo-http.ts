/**
 * `node echo-http.ts [TOOLS] [FOLDER]`: the MCP server over HTTP that everything is measured against; bare node:http and
 * prepared bytes. With a folder, `tools/list` is answered with the bytes of its file `list.json`.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { echoAnswers } from './echo-tools.ts'

const [count = '10', folder] = process.argv.slice(2)
const answers = echoAnswers('echo', Number(count))
const replayed = folder === undefined ? undefined : readFileSync(join(folder, 'list.json'))

const server = createServer((request, response) => {
  if (request.method === 'GET' && request.url === '/calls') {
    response.end(String(answers.calls))
    return
  }
  if (request.method !== 'POST') {
    response.writeHead(405).end()
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const message = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
    answers.answer(message, (bytes) => {
      if (bytes === undefined) return response.writeHead(202).end()
      const body = replayed && message.includes('"tools/list"') ? replayed : Buffer.concat(bytes)
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body)
    })
  })
})
// Longer than any pause between two turns: a connection that is closed while a request is on its way would be a failure.
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}/mcp` }))
})
