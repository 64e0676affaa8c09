import type { ManagedConnection } from './managed-connection.ts'

/** Connections by key, least recently used first. One more than `max` closes another one that nobody uses. */
export class BoundedConnections extends Map<string, ManagedConnection> {
  readonly #max: number
  readonly #mayClose: (managed: ManagedConnection) => boolean
  readonly #close: (managed: ManagedConnection) => void

  constructor(
    max: number,
    mayClose: (managed: ManagedConnection) => boolean,
    close: (managed: ManagedConnection) => void,
  ) {
    super()
    this.#max = max
    this.#mayClose = mayClose
    this.#close = close
  }

  /** Adds a connection, or marks it as the most recently used one. */
  keep(key: string, managed: ManagedConnection): void {
    this.delete(key)
    this.set(key, managed)
    if (this.size > this.#max) this.closeUnused((other) => other !== managed)
  }

  /** Closes the least recently used of these connections, if possible one without a session. False if all are in use. */
  closeUnused(isAmong: (managed: ManagedConnection) => boolean): boolean {
    const unused = [...this].filter(([, managed]) => isAmong(managed) && !managed.busy && this.#mayClose(managed))
    const least = unused.find(([, { sessions }]) => sessions.size === 0) ?? unused[0]
    if (least) this.drop(...least)
    return least !== undefined
  }

  drop(key: string, managed: ManagedConnection): void {
    this.delete(key)
    this.#close(managed)
  }
}
