import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'

/** A port of this process alone, where others share the one that clients know. */
export interface Aside {
  readonly port: number
  /** Nobody else comes in; settles when those who are have left. */
  close(): Promise<void>
}

/** Whoever connects there is served as if at the door itself. */
export async function openAside(door: Server, host: string): Promise<Aside> {
  const listener = createServer((socket) => door.emit('connection', socket))
  listener.listen({ port: 0, host, exclusive: true })
  await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    close: () => new Promise((resolve) => listener.close(() => resolve())),
  }
}
