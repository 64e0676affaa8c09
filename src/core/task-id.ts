import { jsonValue } from '../json/parse-json.ts'

/** A task id as callers see it: the tool that started the task, and the server's own id, sealed for this caller. */
export interface TaskId {
  readonly server: string
  readonly tool: string
  readonly sealed: string
  readonly replica?: string | undefined
}

export const writeTaskId = ({ server, tool, sealed, replica }: TaskId): string =>
  `${Buffer.from(JSON.stringify(replica === undefined ? [server, tool] : [server, tool, replica])).toString('base64url')}.${sealed}`

/** Parses a task id; undefined if Toolway did not issue it. */
export function readTaskId(id: string): TaskId | undefined {
  const [where = '', sealed = '', ...more] = id.split('.')
  if (sealed === '' || more.length > 0) return undefined
  try {
    const [server, tool, replica] = jsonValue(Buffer.from(where, 'base64url').toString('utf8')) as unknown[]
    if (typeof server !== 'string' || typeof tool !== 'string') return undefined
    return { server, tool, sealed, ...(typeof replica === 'string' && { replica }) }
  } catch {
    return undefined
  }
}
