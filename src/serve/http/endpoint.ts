import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Chat } from '../../core/chat.ts'
import type { Budgets } from '../../core/limits/budget.ts'
import type { Admit } from '../auth/throttle.ts'
import type { RequestBodies } from './bodies.ts'
import type { Hosts } from './hosts.ts'

export interface HttpEndpoint extends Disposable {
  /** Handles a request. Returns false if nothing is served at this path. */
  handle(request: IncomingMessage, response: ServerResponse, path: string): boolean
}

/** The parts of the HTTP server that other endpoints use. */
export interface ListeningServer {
  /** The URL of the MCP endpoint. */
  readonly url: string
  readonly port: number
  readonly hosts: Hosts
  /** Authenticates a request. Invalid credentials are limited per address, counted across all endpoints. */
  readonly admit: Admit
  readonly bodies: RequestBodies
  readonly budgets: Budgets
  sessions(): number
  readonly chat?: (() => Chat | undefined) | undefined
}
