/** The least that a reverse proxy in Node can do: what a gateway costs is told in multiples of this. */
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

const target = new URL(process.argv[2] as string)
const agent = new Agent({ keepAlive: true, maxSockets: 64 })

const server = createServer((incoming, response) => {
  const { method, headers } = incoming
  const forwarded = request(target, { method, headers: { ...headers, host: target.host }, agent }, (answer) => {
    response.writeHead(answer.statusCode as number, answer.headers)
    answer.pipe(response)
  })
  forwarded.on('error', () => response.destroy())
  incoming.pipe(forwarded)
})
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}${target.pathname}` }))
})
