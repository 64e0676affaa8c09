import type { ServerResponse } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { type ExposureSetting, exposures } from '../../core/exposure.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import type { ReceivedRequest } from '../http/request.ts'
import type { Params } from '../inbound-message.ts'

export interface AuthIdentity extends Pick<Caller, 'principal' | 'authenticated' | 'admin' | 'agents'>, StepUp {
  /** The endpoint to which it has connected, if that has a name. */
  readonly endpoint?: string | undefined
  /** The named endpoints that it may connect to; undefined if it may use all, and the one without a name. */
  readonly endpoints?: readonly string[] | undefined
}

/** An endpoint for a group of tools, as the configuration describes it. */
export interface NamedEndpoint {
  readonly name: string
  /** The agent that all its callers act as. */
  readonly agent?: string | undefined
}

/** The identity at an endpoint, undefined being the one without a name. Throws if it may not connect there. */
export function identityAt(identity: AuthIdentity, endpoint: NamedEndpoint | undefined): AuthIdentity {
  const { agents, endpoints } = identity
  if (endpoints && !(endpoint && endpoints.includes(endpoint.name))) {
    const sentence = `This credential is for other endpoints: ${endpoints.join(', ') || 'none'}.`
    throw new ToolwayError('DENIED_BY_POLICY', sentence, { rule: 'endpoints of the API key' })
  }
  if (!endpoint) return identity
  const { name, agent } = endpoint
  if (agent === undefined) return { ...identity, endpoint: name }
  if (agents !== '*' && !agents.includes(agent)) {
    const sentence = `This credential may not act as ${agent}, the agent of the endpoint ${name}.`
    throw new ToolwayError('INVALID_AGENT_ID', sentence, { rule: `endpoints.${name}.agent` })
  }
  return { ...identity, endpoint: name, agents: [agent] }
}

export interface StepUp {
  /** The challenge to send if the agent requires a scope that the token lacks. */
  stepUp?(agent: string): string | undefined
}

/** Throws or rejects if the credential is invalid. `beforeSignature` runs before a signature check and may throw. */
export type Authenticate = (
  authorization: string | undefined,
  beforeSignature?: () => void,
) => AuthIdentity | Promise<AuthIdentity>

export const anonymous: AuthIdentity = { principal: 'anonymous', authenticated: false, admin: false, agents: '*' }
export const operator: AuthIdentity = { principal: 'token', authenticated: true, admin: true, agents: '*' }

export const hasSameRights = (one: AuthIdentity, other: AuthIdentity): boolean =>
  one.principal === other.principal &&
  one.admin === other.admin &&
  String(one.endpoints) === String(other.endpoints) &&
  (one.agents === other.agents || JSON.stringify(one.agents) === JSON.stringify(other.agents))

/** Interval between credential checks. A stream may stay open for this long after its credential becomes invalid. */
const credentialCheckMs = 5_000

/** Closes a stream when its credential is revoked, expires, or no longer has the rights of `identity`. */
export const createCredentialWatch =
  (authenticate: Authenticate, clock: Clock) =>
  (stream: { authorization: string | undefined; identity: AuthIdentity; response: ServerResponse }): void => {
    const { authorization, identity, response } = stream
    const check = async () => {
      try {
        if (hasSameRights(await authenticate(authorization), identity)) timer = response.closed ? timer : start()
        else response.destroy()
      } catch {
        response.destroy()
      }
    }
    const start = () => clock.after(credentialCheckMs, () => void check())
    let timer = start()
    response.once('close', () => timer[Symbol.dispose]())
  }

type NamedInRequest = Pick<ReceivedRequest, 'headers' | 'url'>

/** What a request names in the header `toolway-NAME` or the query parameter `NAME`. */
function namedInRequest({ headers, url = '' }: NamedInRequest, name: 'agent' | 'expose'): string | undefined {
  const named = headers[`toolway-${name}`]
  if (typeof named === 'string') return named
  const query = url.indexOf('?')
  const asked = query < 0 ? [] : new URLSearchParams(url.slice(query + 1)).getAll(name)
  // Like a repeated header, a repeated parameter is not one value: a proxy may have checked either of them.
  return asked.length === 0 ? undefined : asked.join(', ')
}

/** The agent named by the `Toolway-Agent` header or the `agent` query parameter (G7). */
export const agentOfRequest = (request: NamedInRequest): string | undefined => namedInRequest(request, 'agent')

/** The exposure mode named by the `Toolway-Expose` header or the `expose` query parameter (V14). */
export function exposureOfRequest(request: NamedInRequest): Pick<Caller, 'exposure'> {
  const named = namedInRequest(request, 'expose')
  if (named === undefined) return {}
  if (isExposure(named)) return { exposure: named }
  const modes = exposureSettings.join(', ')
  throw new ToolwayError('INVALID_ARGUMENTS', `Unknown exposure mode ${quote(named)}: use one of ${modes}.`)
}

const exposureSettings: readonly ExposureSetting[] = ['auto', ...exposures]
const isExposure = (text: string): text is ExposureSetting => (exposureSettings as readonly string[]).includes(text)

/** The agent named in a message's `_meta`. It takes precedence over the agent named in the HTTP request. */
export function agentOfParams({ _meta }: Params): string | undefined {
  const named = isRecord(_meta) ? _meta['dev.toolway/agent'] : undefined
  if (named === undefined || typeof named === 'string') return named
  throw new ToolwayError('INVALID_AGENT_ID', 'The "dev.toolway/agent" in "_meta" must be an agent name.')
}

/** The agents whose calls a caller may see: all that its credential names. With `*`, only the one it acts as. */
export const ownAgents = ({ agent, agents }: Pick<Caller, 'agent' | 'agents'>): ReadonlySet<string> =>
  new Set(agents === '*' ? [agent] : [agent, ...agents])

/** Resolves the agent that a caller acts as. Records and throws the denial if the caller may not act as that agent. */
export function agentFor(
  access: Pick<Access, 'agentOf' | 'rejected'>,
  who: Pick<Caller, 'agents' | 'principal' | 'address'> & StepUp,
  asked: string | undefined,
): string {
  try {
    return access.agentOf(who, asked)
  } catch (thrown) {
    const { principal, address } = who
    const { code, message, details } = ToolwayError.from(thrown)
    access.rejected({ principal, code, address, asked })
    const challenge = asked === undefined ? undefined : who.stepUp?.(asked)
    throw challenge === undefined ? thrown : new ToolwayError(code, message, { ...details, challenge })
  }
}

/** The caller, acting as the agent `asked`. Resolved for each request, because the policy may have changed. */
export function actingAs(access: Pick<Access, 'agentOf' | 'rejected'>, caller: Caller, asked = caller.asked): Caller {
  const agent = agentFor(access, caller, asked)
  if (agent === caller.agent && asked === caller.asked) return caller
  return { ...caller, agent, asked }
}
