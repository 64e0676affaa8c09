/** A task as callers know it: which tool has started it, and its own id, sealed for the caller it belongs to. */
export interface TaskId {
  readonly server: string
  readonly tool: string
  readonly sealed: string
}

export const writeTaskId = ({ server, tool, sealed }: TaskId): string =>
  `${Buffer.from(JSON.stringify([server, tool])).toString('base64url')}.${sealed}`

/** Undefined for whatever is no id of ours. */
export function readTaskId(id: string): TaskId | undefined {
  const [where = '', sealed = '', ...more] = id.split('.')
  if (sealed === '' || more.length > 0) return undefined
  try {
    const [server, tool] = JSON.parse(Buffer.from(where, 'base64url').toString('utf8')) as unknown[]
    return typeof server === 'string' && typeof tool === 'string' ? { server, tool, sealed } : undefined
  } catch {
    return undefined
  }
}
