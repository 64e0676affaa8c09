import { type Call, ownerKey, type Peer, wrapPeer } from '../../core/call.ts'
import { ServerError } from '../../core/errors.ts'
import { type Budget, createBudgets } from '../../core/limits/budget.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Result } from '../../core/result.ts'
import { readTaskId, writeTaskId } from '../../core/task-id.ts'
import { Json } from '../../json/json.ts'
import type { Seal } from '../../lib/seal.ts'
import { bytesOf, type Replacement, splice, textOf } from '../../wire/bytes.ts'
import { unambiguous } from '../../wire/check-members.ts'
import type { ResultMessage } from '../../wire/message.ts'
import { unansweredError } from '../transports/transport-errors.ts'

/** Clients send the id in a header, which most servers limit to 16 KiB in all. */
const maxTaskId = fixedLimits.taskIdCharacters.value

const relatedTask = 'io.modelcontextprotocol/related-task'

/**
 * Converts the result of a call that started a task: seals the task id, and forwards status updates under that id, as
 * long as the caller may use the tool.
 */
export function sealStartedTask(
  result: Buffer,
  call: Call,
  seal: Seal,
  updates: TaskUpdates,
  mayUse: () => boolean = () => true,
): Buffer {
  const { peer } = call.caller
  return withTaskIds(result, (id) => {
    if (id.length > maxTaskId) {
      const { server } = call.entry
      const sentence = `${server} started a task whose id is longer than ${maxTaskId} characters (a fixed limit).`
      throw unansweredError('tools/call', sentence, { server, requestOnly: true })
    }
    const given = newId(id, call, seal)
    const known = (news: Buffer) => Json.raw(withTaskIds(news, () => given))
    const notify = (news: Buffer) => mayUse() && peer?.notify('notifications/tasks/status', known(news))
    if (peer) updates.follow(id, call.caller.principal, notify)
    return given
  })
}

/**
 * Forwards a request about a task, using the server's own task id, and restores the caller's id in the response. `replica`
 * is set if each replica runs its own process of the server: a process may use the id of another one's task for a task of
 * another caller.
 */
export async function relayTask(
  method: string,
  call: Call,
  seal: Seal,
  send: (taskId: string, call: Call) => Promise<Buffer>,
  replica?: string,
): Promise<Result> {
  const given = call.input.rest?.taskId
  const task = typeof given === 'string' ? readTaskId(given) : undefined
  const taskId = task && seal.open(task.sealed, taskBinding(call))
  if (!taskId) throw taskNotFound(`${method} needs the id of one of your tasks.`)
  if (replica !== undefined && task.replica !== replica)
    throw taskNotFound(
      'it runs in another process of the gateway, which only the session that started it reaches, or ended.',
    )
  const known = (bytes: Buffer): Json<never> =>
    Json.raw(withTaskIds(bytes, (id) => (id === taskId ? (given as string) : newId(id, call, seal))))
  const bytes = await send(taskId, { ...call, peer: through(call.peer, known) })
  return { body: known(bytes), isError: false }
}

const taskNotFound = (why: string) => new ServerError(Json.of({ code: -32602, message: `Task not found: ${why}` }))

/** The server's id of the task that a result says was started; undefined if it is another result. */
export function startedTaskId(result: Buffer): string | undefined {
  const task = unambiguous(result, ['task']).get('task')
  return task && textOf(unambiguous(task, ['taskId']).get('taskId'))
}

/** The longest time for which a task keeps its process from being stopped as idle. */
const maxTaskLifetimeMs = 86_400_000

/** How long a task that a result starts may live, counting from now. Without a TTL, it may live for ever. */
export function taskLifetimeMs(result: Buffer): number {
  const top = unambiguous(result, ['task', 'ttlMs'])
  const ttl = top.get('ttlMs') ?? membersInside(top.get('task'), 'ttl')?.get('ttl')
  const ms = Number(ttl?.toString('latin1', 0, 32))
  return ms >= 0 ? Math.min(ms, maxTaskLifetimeMs) : maxTaskLifetimeMs
}

/** Waits for the result of a task that Toolway started for a caller that did not ask for one. */
export async function resultOfTask(
  call: Call,
  seal: Seal,
  send: (method: string, call: Call) => Promise<ResultMessage>,
): Promise<ResultMessage> {
  const known = (bytes: Buffer): Json<never> => Json.raw(withTaskIds(bytes, (id) => newId(id, call, seal)))
  const answer = await send('tasks/result', { ...call, peer: through(call.peer, known) })
  return { ...answer, result: known(answer.result).bytes }
}

/** A peer that replaces the task id in messages that the server sends during the request. */
const through = (peer: Peer, known: (bytes: Buffer) => Json): Peer =>
  wrapPeer(peer, {
    notify: (method, params) => peer.notify(method, known(params.bytes)),
    ask: (method, params, ...rest) => peer.ask(method, known(params.bytes), ...rest),
  })

function withTaskIds(result: Buffer, served: (id: string) => string): Buffer {
  const top = unambiguous(result, ['_meta', 'task', 'taskId'])
  const related = membersInside(membersInside(top.get('_meta'), relatedTask)?.get(relatedTask), 'taskId')
  const found = [top.get('taskId'), membersInside(top.get('task'), 'taskId')?.get('taskId'), related?.get('taskId')]
  const replacements = found.flatMap((slice): Replacement[] => {
    const id = textOf(slice)
    return slice && id !== undefined ? [[slice, bytesOf(served(id))]] : []
  })
  replacements.sort(([a], [b]) => a.byteOffset - b.byteOffset)
  return splice(result, replacements)
}

const membersInside = (bytes: Buffer | undefined, name: string) => bytes && unambiguous(bytes, [name])

function newId(id: string, call: Call, seal: Seal): string {
  const { server, name: tool } = call.entry
  return writeTaskId({ server, tool, sealed: seal.close(id, taskBinding(call)), replica: seal.replica })
}

/** Binds a task id to one caller. */
const taskBinding = ({ entry, caller }: Call) => ['task', entry.server, entry.name, ownerKey(caller)].join('\n')

interface Follower {
  readonly principal: string
  notify(news: Buffer): void
}

const ends: readonly unknown[] = ['completed', 'failed', 'cancelled']

/**
 * Subscribers to a session-based server's task status notifications, by the server's task ids; separate for each
 * connection, because two processes of a server may use the same task id. A server may never report a task's end: at its
 * bound, a principal's oldest subscriber is dropped.
 */
export class TaskUpdates implements Disposable {
  readonly #budget: Budget
  readonly #followers = new Map<unknown, Follower>()

  constructor(budget: Budget = createBudgets().tasks) {
    this.#budget = budget
  }

  follow(taskId: string, principal: string, notify: (news: Buffer) => void): void {
    this.#forget(taskId)
    if (this.#budget.take(principal)) {
      const [oldest] = [...this.#followers].find(([, follower]) => follower.principal === principal) ?? []
      this.#forget(oldest)
      if (this.#budget.take(principal)) return
    }
    this.#followers.set(taskId, { principal, notify })
  }

  publish(news: Buffer = Buffer.from('{}')): void {
    const { taskId, status } = Json.raw<Record<string, unknown>>(news).value
    this.#followers.get(taskId)?.notify(news)
    if (ends.includes(status)) this.#forget(taskId)
  }

  [Symbol.dispose](): void {
    for (const taskId of this.#followers.keys()) this.#forget(taskId)
  }

  #forget(taskId: unknown): void {
    const follower = this.#followers.get(taskId)
    if (follower === undefined) return
    this.#followers.delete(taskId)
    this.#budget.give(follower.principal)
  }
}
