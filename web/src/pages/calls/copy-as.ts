import type { CallDetail } from '../../../../src/admin/contract.ts'
import { noAgent } from '../../api/session.ts'

export interface CopiedCall extends Pick<CallDetail, 'operation' | 'server' | 'name' | 'agent'> {
  /** The arguments as JSON text, which may contain numbers that JavaScript would round. */
  readonly arguments: string
  /** The URL of the gateway and of its MCP endpoint. */
  readonly origin: string
  readonly endpoint: string
}

export type CopyFormat = 'curl' | 'cli' | 'sdk'

export const copyFormats: Readonly<Record<CopyFormat, string>> = { curl: 'curl', cli: 'CLI', sdk: 'TypeScript' }

/** A call as a command or as code. Undefined if the format has no way to make it. */
export function copyAs(format: CopyFormat, call: CopiedCall): string | undefined {
  if (format === 'curl') return asCurl(call)
  return format === 'cli' ? asCommand(call) : asCode(call)
}

/** Quotes text for a POSIX shell, so that it is taken as it is. */
export const shellQuote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

const targetOf = ({ server, name }: CopiedCall): string => `${server}.${name}`

const agentOf = ({ agent }: CopiedCall): string | undefined => (agent === noAgent || agent === '' ? undefined : agent)

/** One line, because a shell reads a line break within quotes as part of the text, but people paste line by line. */
const oneLine = (json: string): string => json.replace(/[\r\n]+/g, ' ')

function asCurl(call: CopiedCall): string {
  const agent = agentOf(call)
  const ofAgent = agent === undefined ? '' : `,"agent":${JSON.stringify(agent)}`
  const args = oneLine(call.arguments)
  const [path, body] =
    call.operation === 'call_tool'
      ? [`tools/${encodeURIComponent(targetOf(call))}/call`, `{"arguments":${args}${ofAgent}}`]
      : [
          'playground',
          `{"operation":"${call.operation}","name":${JSON.stringify(nameOf(call))},"arguments":${args}${ofAgent}}`,
        ]
  return [
    `curl -sS ${shellQuote(`${call.origin}/admin/api/${path}`)}`,
    `  -H "Authorization: Bearer $TOOLWAY_TOKEN" -H 'Content-Type: application/json'`,
    `  -d ${shellQuote(body)}`,
  ].join(' \\\n')
}

const nameOf = (call: CopiedCall): string => (call.operation === 'read_resource' ? call.name : targetOf(call))

function asCommand(call: CopiedCall): string | undefined {
  if (call.operation !== 'call_tool') return undefined
  const agent = agentOf(call)
  const args = `--args ${shellQuote(oneLine(call.arguments))}`
  return ['toolway call', shellQuote(targetOf(call)), args, agent && `--agent ${shellQuote(agent)}`]
    .filter(Boolean)
    .join(' ')
}

function asCode(call: CopiedCall): string | undefined {
  const request = requestOf(call)
  if (request === undefined) return undefined
  const agent = agentOf(call)
  const headers = [
    '    Authorization: `Bearer ${process.env.TOOLWAY_TOKEN}`,',
    ...(agent === undefined ? [] : [`    'Toolway-Agent': ${JSON.stringify(agent)},`]),
  ]
  return [
    "import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'",
    '',
    "const client = new Client({ name: 'example', version: '1.0.0' })",
    `const transport = new StreamableHTTPClientTransport(new URL(${JSON.stringify(call.endpoint)}), {`,
    '  requestInit: { headers: {',
    ...headers,
    '  } },',
    '})',
    'await client.connect(transport)',
    `const result = await client.${request}`,
    'console.log(result)',
    'await client.close()',
  ].join('\n')
}

function requestOf(call: CopiedCall): string | undefined {
  const { operation, server, name } = call
  const served = JSON.stringify(`${server}__${name}`)
  if (operation === 'call_tool') return `callTool({ name: ${served}, arguments: ${asLiteral(call.arguments)} })`
  if (operation === 'get_prompt') return `getPrompt({ name: ${served}, arguments: ${asLiteral(call.arguments)} })`
  if (operation === 'read_resource') return `readResource({ uri: ${JSON.stringify(name)} })`
  return undefined
}

/** JSON is an object literal, except that `__proto__` in a literal sets the prototype instead of a member. */
const asLiteral = (json: string): string =>
  json.includes('__proto__') || json.includes('\\u') ? `JSON.parse(${JSON.stringify(json)})` : json
