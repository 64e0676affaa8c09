import type { ClientKind } from '../config/import/client-kind.ts'
import { FileProblem } from './file.ts'
import { isSection, type Section, sectionText, valueAt } from './section-text.ts'

/** How a client reaches us: by starting a program, or at an address. */
export type ClientTransport =
  | { readonly kind: 'stdio'; readonly command: string; readonly args: readonly string[] }
  | {
      readonly kind: 'http'
      readonly url: string
      /** Headers beside the credential. */
      readonly headers: Readonly<Record<string, string>>
      /** Absent where nobody asks for one. */
      readonly token?: TokenLocation
    }

/** Where a client finds the token. */
interface TokenLocation {
  readonly variable: string
  /** Absent where it is in no file of its own. */
  readonly file?: string
  /** The token itself, where the user wants it in the client's file. */
  readonly literal?: string
}

type Http = Extract<ClientTransport, { kind: 'http' }>

/** Our entry as each client writes servers. */
interface EntryFormat {
  /** Where servers stand in its file. */
  readonly servers: readonly string[]
  readonly stdio: (way: Extract<ClientTransport, { kind: 'stdio' }>) => object
  /** Absent where a client starts programs only. */
  readonly http?: (way: Http, bearer: string | undefined) => object
  /** How it refers to a token that stands elsewhere; absent where it cannot. */
  readonly reference?: (token: TokenLocation) => string | undefined
}

const started = ({ command, args }: { command: string; args: readonly string[] }) => ({ command, args: [...args] })

/** The headers with the credential among them. */
const withBearer = ({ headers }: Http, bearer: string | undefined): { headers?: object } => {
  const all = { ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }), ...headers }
  return Object.keys(all).length > 0 ? { headers: all } : {}
}

export const shapes: Readonly<Record<ClientKind, EntryFormat>> = {
  'claude-code': {
    servers: ['mcpServers'],
    stdio: (way) => ({ type: 'stdio', ...started(way) }),
    http: (way, bearer) => ({ type: 'http', url: way.url, ...withBearer(way, bearer) }),
    reference: ({ variable }) => `\${${variable}}`,
  },
  'claude-desktop': { servers: ['mcpServers'], stdio: started },
  cursor: {
    servers: ['mcpServers'],
    stdio: (way) => ({ type: 'stdio', ...started(way) }),
    http: (way, bearer) => ({ url: way.url, ...withBearer(way, bearer) }),
    reference: ({ variable }) => `\${env:${variable}}`,
  },
  vscode: {
    servers: ['servers'],
    stdio: (way) => ({ type: 'stdio', ...started(way) }),
    http: (way, bearer) => ({ type: 'http', url: way.url, ...withBearer(way, bearer) }),
    reference: ({ variable }) => `\${env:${variable}}`,
  },
  codex: {
    servers: ['mcp_servers'],
    stdio: started,
    http: (way, bearer) => ({
      url: way.url,
      ...(way.token && way.token.literal === undefined && { bearer_token_env_var: way.token.variable }),
      ...(way.token?.literal !== undefined
        ? { http_headers: withBearer(way, bearer).headers }
        : Object.keys(way.headers).length > 0 && { http_headers: way.headers }),
    }),
    reference: ({ variable }) => variable,
  },
  opencode: {
    servers: ['mcp'],
    stdio: ({ command, args }) => ({ type: 'local', command: [command, ...args], enabled: true }),
    http: (way, bearer) => ({ type: 'remote', url: way.url, ...withBearer(way, bearer), oauth: false, enabled: true }),
    reference: ({ file }) => (file === undefined ? undefined : `{file:${file}}`),
  },
  gemini: {
    servers: ['mcpServers'],
    stdio: started,
    http: (way, bearer) => ({ httpUrl: way.url, ...withBearer(way, bearer) }),
    reference: ({ variable }) => `\${${variable}}`,
  },
  windsurf: {
    servers: ['mcpServers'],
    stdio: started,
    http: (way, bearer) => ({ serverUrl: way.url, ...withBearer(way, bearer) }),
    reference: ({ file }) => (file === undefined ? undefined : `\${file:${file}}`),
  },
  zed: {
    servers: ['context_servers'],
    stdio: started,
    http: (way, bearer) => ({ url: way.url, ...withBearer(way, bearer) }),
  },
  cline: {
    servers: ['mcpServers'],
    stdio: (way) => ({ type: 'stdio', ...started(way), disabled: false }),
    http: (way, bearer) => ({ type: 'streamableHttp', url: way.url, ...withBearer(way, bearer), disabled: false }),
  },
}

/** Our entry for a client. */
export function entryFor(client: ClientKind, label: string, way: ClientTransport): object {
  const shape = shapes[client]
  if (way.kind === 'stdio') return shape.stdio(way)
  if (!shape.http) throw new FileProblem(`${label} only starts programs.`, 'Leave out --http.')
  if (!way.token) return shape.http(way, undefined)
  const bearer = way.token.literal ?? shape.reference?.(way.token)
  if (bearer === undefined) {
    throw new FileProblem(
      `${label} cannot read a token from a variable or file.`,
      'Omit --http, or add --with-token to write the token into its file.',
    )
  }
  return shape.http(way, bearer)
}

/** The name under which clients know us. */
export const ownName = 'toolway'

/** A client's file as text that can be changed without touching anything else in it. */
export interface ClientText {
  /** The servers in it, by name. */
  readonly servers: Section
  /** Where they stand. */
  readonly path: readonly string[]
  /** With our entry, or without it, and without the servers named. */
  edited(entry: object | undefined, without?: readonly string[]): string
}

export function clientText(client: ClientKind, file: string, text: string): ClientText {
  const { members, path, edited } = sectionText(file, text, (whole) => serversPath(client, whole))
  return {
    servers: members,
    path,
    edited: (entry, without = []) =>
      entry ? edited({ [ownName]: entry }, without) : edited({}, [...without, ownName]),
  }
}

/** The newer form of OpenCode has its servers one level deeper. */
function serversPath(client: ClientKind, whole: Section): readonly string[] {
  const { servers } = shapes[client]
  const deeper = [...servers, 'servers']
  return client === 'opencode' && isSection(valueAt(whole, deeper)) ? deeper : servers
}
