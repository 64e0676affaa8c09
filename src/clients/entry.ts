import { applyChanges, contentOf, valueAt } from '../config/edit/edit-text.ts'
import { FileProblem } from '../config/edit/file.ts'
import type { ClientKind } from '../config/import/client-kind.ts'
import { isOwnEntry, ownEntryName } from '../config/import/own-entry.ts'
import { asRecord, isRecord } from '../lib/is-record.ts'

export type ClientTransport =
  | { readonly kind: 'stdio'; readonly command: string; readonly args: readonly string[] }
  | {
      readonly kind: 'http'
      readonly url: string
      /** Headers other than `Authorization`. */
      readonly headers: Readonly<Record<string, string>>
      /** Absent if the gateway does not require a token. */
      readonly token?: TokenLocation
    }

interface TokenLocation {
  readonly variable: string
  /** The file that contains the token; absent if the token is not stored in a file. */
  readonly file?: string
  /** The token itself, if the user wants it in the client's file. */
  readonly literal?: string
}

type Stdio = Extract<ClientTransport, { kind: 'stdio' }>
type Http = Extract<ClientTransport, { kind: 'http' }>

/** The format of Toolway's entry in a client's file. */
interface EntryFormat {
  /** Path of the section that lists the servers. */
  readonly servers: readonly string[]
  /** Absent if the entry has only a command and its arguments. */
  readonly stdio?: (way: Stdio) => object
  /** Absent if the client supports stdio only. */
  readonly http?: (way: Http, bearer: string | undefined) => object
  /** Formats a reference to a token in a variable or file; absent if the client does not support references. */
  readonly reference?: (token: TokenLocation) => string | undefined
}

const started = ({ command, args }: Stdio): object => ({ command, args: [...args] })

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
  'claude-desktop': { servers: ['mcpServers'] },
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
    http: (way, bearer) => ({ httpUrl: way.url, ...withBearer(way, bearer) }),
    reference: ({ variable }) => `\${${variable}}`,
  },
  windsurf: {
    servers: ['mcpServers'],
    http: (way, bearer) => ({ serverUrl: way.url, ...withBearer(way, bearer) }),
    reference: ({ file }) => (file === undefined ? undefined : `\${file:${file}}`),
  },
  zed: {
    servers: ['context_servers'],
    http: (way, bearer) => ({ url: way.url, ...withBearer(way, bearer) }),
  },
  cline: {
    servers: ['mcpServers'],
    stdio: (way) => ({ type: 'stdio', ...started(way), disabled: false }),
    http: (way, bearer) => ({ type: 'streamableHttp', url: way.url, ...withBearer(way, bearer), disabled: false }),
  },
}

export function entryFor(client: ClientKind, label: string, way: ClientTransport): object {
  const shape: EntryFormat = shapes[client]
  if (way.kind === 'stdio') return (shape.stdio ?? started)(way)
  if (!shape.http) throw new FileProblem(`${label} does not support HTTP servers.`, 'Omit --http.')
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

export type ClientText = ReturnType<typeof clientText>

/** A client's file as text. Edits change only the servers section. */
export function clientText(client: ClientKind, file: string, text: string) {
  const whole = contentOf(file, text)
  const path = serversPath(client, whole)
  const section = valueAt(whole, path)
  const servers = asRecord(section)
  return {
    servers,
    /** The names of Toolway's own entries. */
    own: Object.keys(servers).filter((name) => isOwnEntry(name, servers[name])),
    /** Path of the section that lists the servers. */
    path,
    /** Sets or removes Toolway's entry `own`, and removes the servers in `without`. */
    edited(entry: object | undefined, without: readonly string[] = [], own = ownEntryName()): string {
      if (!isRecord(section ?? {})) {
        throw new FileProblem(`${path.join('.')} in it is not a section`, 'Fix it, then try again.')
      }
      const gone = [...without, ...(entry ? [] : [own])].filter((name) => Object.hasOwn(servers, name))
      const changes = gone.map((name) => ({ path: [...path, name] }))
      return applyChanges(file, text, entry ? [...changes, { path: [...path, own], value: entry }] : changes)
    },
  }
}

/** Path of the servers section. Newer OpenCode files nest servers one level deeper. */
function serversPath(client: ClientKind, whole: unknown): readonly string[] {
  const { servers } = shapes[client]
  const deeper = [...servers, 'servers']
  return client === 'opencode' && isRecord(valueAt(whole, deeper)) ? deeper : servers
}
