import type { Paint } from './output.ts'

export interface Banner {
  readonly version: string
  readonly url: string
  readonly servers: number
  readonly nativeTools: number
  readonly metaTools: number
  /** What clients must send, if anything. */
  readonly token: string | undefined
  readonly tokenGenerated: boolean
  /** The configuration files that were read, shortened for reading. */
  readonly files: readonly string[]
  /** What the configuration asks for and this version does not do yet. */
  /** How the user spells the command line. */
  readonly command: string
}

/** What `claude mcp add` wants to hear. */
const claudeCommand = (url: string, token: string | undefined): string =>
  `claude mcp add --transport http toolway ${url}` +
  (token === undefined ? '' : ` --header "Authorization: Bearer ${token}"`)

/** What stands behind the # never leaves the browser, which signs in with it. */
const dashboardLink = (url: string, token: string | undefined): string =>
  `${new URL(url).origin}/${token === undefined ? '' : `#token=${token}`}`

/** The entry that most clients read from a JSON file. */
const clientJson = (url: string, token: string | undefined): object => ({
  mcpServers: {
    toolway: { type: 'http', url, ...(token !== undefined && { headers: { Authorization: `Bearer ${token}` } }) },
  },
})

const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? '' : 's'}`

const indented = (text: string): string => text.replace(/^/gm, '    ')

/** What `serve` says when it is up: where it is, what it serves, and how to point a client at it. */
export function banner(facts: Banner, paint: Paint): string {
  const { url, token } = facts
  const serving = [
    facts.servers > 0 ? count(facts.servers, 'server') : 'no servers yet',
    count(facts.nativeTools, 'native tool'),
    count(facts.metaTools, 'meta-tool'),
  ]
  const kept = facts.tokenGenerated ? 'generated once and kept between starts' : 'from your configuration'
  const rows: (readonly [string, string])[] = [
    ['Endpoint', paint('cyan', url)],
    [
      'Token',
      token === undefined ? paint('yellow', 'none: whoever reaches it may use it') : `${token}  ${paint('dim', kept)}`,
    ],
    ['Dashboard', paint('cyan', dashboardLink(url, token))],
    ['Serving', serving.join(', ')],
    [
      'Config',
      facts.files.length > 0 ? facts.files.join(', ') : `none, so defaults apply; \`${facts.command} init\` writes one`,
    ],
  ]
  return [
    '',
    `  ${paint('bold', 'Toolway')} ${paint('dim', facts.version)}`,
    '',
    ...rows.map(([title, value]) => `  ${paint('dim', title.padEnd(10))}${value}`),
    '',
    `  ${paint('bold', 'Claude Code')}`,
    '',
    indented(claudeCommand(url, token)),
    '',
    `  ${paint('bold', 'Clients with a JSON file')} ${paint('dim', '(Cursor and others; VS Code calls the outer key "servers")')}`,
    '',
    indented(JSON.stringify(clientJson(url, token), undefined, 2)),
    '',
    `  ${paint('dim', 'Ctrl+C stops it.')}`,
    '',
  ].join('\n')
}
