import type { Call } from '../../core/call.ts'
import { remembered, text } from './attribute.ts'

const overHttp = `${text('network.transport', 'tcp')},${text('network.protocol.name', 'http')}`
const overPipe = text('network.transport', 'pipe')

/** Says whose a call is, and how it came; ready to be written. */
export function createCallerAttributes(redact: (text: string) => string): (call: Call) => string {
  const agent = remembered('toolway.agent')
  const version = remembered('mcp.protocol.version')
  const session = remembered('mcp.session.id')
  return ({ id, parent, caller, peer }) => {
    const who = `${agent(redact(caller.agent))},${text('toolway.call.id', id)}`
    // How a call inside another one came over the wire is told there.
    const request = parent === undefined ? peer.request : undefined
    if (request === undefined) return who
    const asked = `${who},${text('jsonrpc.request.id', String(request.id))},${version(request.revision)}`
    if (caller.address === undefined) return `${asked},${overPipe}`
    // What we call a session of the stateless era means nothing outside.
    return `${asked},${overHttp}${caller.session.startsWith('modern-') ? '' : `,${session(caller.session)}`}`
  }
}
