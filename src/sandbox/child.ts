import type { Frame } from './guest/frames.ts'

/** A process or thread that runs programs, as its host sees it: a line to it, and means to end it. */
export interface Child {
  /** Settles when it can be given a program; rejects with the reason if it never can. */
  readonly ready: Promise<void>
  /** Settles when it is gone. */
  readonly ended: Promise<void>
  /** Whoever listens hears frames from now on, and once if the child breaks the rules or is gone. */
  listen(receiver: Receiver): void
  /** Settles when the message has left this process, or never will. */
  send(kind: number, id: number, payload?: string | Uint8Array): Promise<void>
  /** Milliseconds it has spent on a processor; undefined where nobody can tell. */
  cpuMs(): number | undefined
  /** Stops it from running until `thaw`; false where that cannot be had. */
  freeze(): boolean
  thaw(): void
  /** Ends it, whatever it does; settles when nothing of it is left. */
  kill(): Promise<void>
}

export interface Receiver {
  frame(frame: Frame): void
  /** It said what no honest child says. */
  broken(reason: string): void
  ended(): void
}
