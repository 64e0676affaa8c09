/** A task as callers know it: which tool has started it, and its own id, sealed for the caller it belongs to. */
export interface TaskId {
  readonly server: string
  readonly tool: string
  readonly sealed: string
  /** The one that has started it, where there are several. */
  readonly replica?: string | undefined
}

export const writeTaskId = ({ server, tool, sealed, replica }: TaskId): string =>
  `${Buffer.from(JSON.stringify(replica === undefined ? [server, tool] : [server, tool, replica])).toString('base64url')}.${sealed}`

/** Undefined for whatever is no id of ours. */
export function readTaskId(id: string): TaskId | undefined {
  const [where = '', sealed = '', ...more] = id.split('.')
  if (sealed === '' || more.length > 0) return undefined
  try {
    const [server, tool, replica] = JSON.parse(Buffer.from(where, 'base64url').toString('utf8')) as unknown[]
    if (typeof server !== 'string' || typeof tool !== 'string') return undefined
    return { server, tool, sealed, ...(typeof replica === 'string' && { replica }) }
  } catch {
    return undefined
  }
}
