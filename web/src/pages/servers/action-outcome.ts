import type { ServerView } from '../../../../src/admin/contract.ts'
import type { ServerAction } from '../../api/endpoints.ts'
import { ApiError } from '../../api/request.ts'

type State = Pick<ServerView, 'name' | 'health' | 'reason' | 'transport' | 'tools' | 'process'>

/**
 * What an action on a server did, from the server's state before and after it. Throws if the server cannot be used now:
 * the API succeeds as soon as the action was performed, even if the server still does not work.
 */
export function actionOutcome(action: ServerAction, before: Pick<State, 'process'>, after: State): string {
  const { name, health, reason, transport, tools, process } = after
  if (action === 'disable') return `Turned off ${name}.`
  if (health === 'unhealthy' || health === 'needs-auth' || health === 'degraded') {
    throw new ApiError(0, 'SERVER_UNHEALTHY', `${attempts[action]} ${name}, but it is ${health}. ${reason}`)
  }
  if (action === 'enable') return `Turned on ${name}.`
  if (health === 'starting') return `${name} is still starting.`
  if (action === 'refresh') return `Refreshed the lists of ${name}: ${tools} ${tools === 1 ? 'tool' : 'tools'}.`
  if (transport !== 'stdio') return `Reconnected to ${name}.`
  if (!process) return `Stopped ${name}; the next call starts it.`
  const previous = before.process && before.process.pid !== process.pid ? ` (before: ${before.process.pid})` : ''
  return `Restarted ${name}: process ${process.pid}${previous}.`
}

const attempts: Readonly<Record<Exclude<ServerAction, 'disable'>, string>> = {
  restart: 'Restarted',
  refresh: 'Refreshed',
  enable: 'Turned on',
}
