import type { Call } from '../core/call.ts'
import { ServerError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import type { Result } from '../core/result.ts'
import type { Seal } from '../core/seal.ts'
import { readTaskId, writeTaskId } from '../core/task-id.ts'
import { members } from '../wire/scan.ts'
import { bytesOf, type Replacement, splice, textOf } from '../wire/splice.ts'

const relatedTask = 'io.modelcontextprotocol/related-task'

/** Whose a task is: what was sealed for one caller says nothing to another. */
const bindingOf = ({ entry, caller }: Call) => ['task', entry.server, entry.name, caller.principal].join('\n')

/** A result in which tasks go by the ids under which this caller knows them. */
export function servedTasks(result: Buffer, call: Call, seal: Seal): Buffer {
  if (!result.includes('"taskId"')) return result
  const { server, name: tool } = call.entry
  const served = (id: string) => writeTaskId({ server, tool, sealed: seal.close(id, bindingOf(call)) })
  const top = members(result)
  const related = membersOf(membersOf(top?.get('_meta'))?.get(relatedTask))
  const found = [top?.get('taskId'), membersOf(top?.get('task'))?.get('taskId'), related?.get('taskId')]
  const replacements = found.flatMap((slice): Replacement[] => {
    const id = textOf(slice)
    return slice && id !== undefined ? [[slice, bytesOf(served(id))]] : []
  })
  return splice(
    result,
    replacements.sort(([a], [b]) => a.byteOffset - b.byteOffset),
  )
}

const membersOf = (bytes: Buffer | undefined) => (bytes ? members(bytes) : undefined)

/** Passes on a request about a task, with the id by which the server knows it. */
export function relayTask(
  method: string,
  call: Call,
  seal: Seal,
  send: (taskId: string) => Promise<Buffer>,
): Promise<Result> {
  const given = call.input.rest?.taskId
  const sealed = typeof given === 'string' ? readTaskId(given)?.sealed : undefined
  const taskId = sealed && seal.open(sealed, bindingOf(call))
  if (!taskId) {
    const message = `Task not found: ${method} needs the id of a task of yours.`
    return Promise.reject(new ServerError(Json.of({ code: -32602, message })))
  }
  return send(taskId).then((bytes) => ({ body: Json.raw(servedTasks(bytes, call, seal)), isError: false }))
}
