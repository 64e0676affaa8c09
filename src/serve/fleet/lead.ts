import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import type { Membership } from '../../core/membership.ts'
import { errorBody } from '../admin/answer.ts'
import { Refusal, refuse } from '../refusal.ts'
import { handedOver, handOver } from './hand-over.ts'

/** The workers of one machine, which share the port. */
export interface Workers {
  /** They alone, where there are no other machines. */
  readonly membership: Membership | undefined
  /** Where the one is that answers people; undefined where that is this one. */
  lead(): string | undefined
}

/**
 * Lets one worker answer all that is for people: who has logged in there is known there, and figures do not jump from
 * one worker's to another's. False where that is this one.
 */
export async function ledElsewhere(
  request: IncomingMessage,
  response: ServerResponse,
  { membership, workers, clock }: { readonly membership: Membership; readonly workers: Workers; readonly clock: Clock },
): Promise<boolean> {
  const handed = handedOver(request, membership)
  if (handed) {
    // The connection is that of one request, and of this client alone.
    Object.defineProperty(request.socket, 'remoteAddress', { value: handed.client, configurable: true })
    return false
  }
  const address = workers.lead()
  if (address === undefined) return false
  if (await handOver({ request, response, body: undefined, unread: request, sameHost: true, address, membership }))
    return true
  const sentence = 'The worker that answers this is being replaced; try again in a second.'
  refuse(response, Refusal.of('OVERLOADED', sentence, { retryAfterMs: 1_000 }), clock, errorBody)
  return true
}
