import type { IncomingMessage } from 'node:http'
import { Refusal } from '../refusal.ts'
import { type Login, loginMs } from './logins.ts'

/** Cookies know no ports: two gateways on one machine must not take each other's. */
const nameOn = (port: number): string => `toolway_admin_${port}`

/** The id that a browser shows, if any. */
export function cookieOf({ headers }: IncomingMessage, port: number): string | undefined {
  const name = nameOn(port)
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [key = '', value = ''] = pair.split('=').map((part) => part.trim())
    if (key === name && value !== '') return value
  }
  return undefined
}

/** The cookie for a login, or, without one, the one that ends it. */
export function setCookie(request: IncomingMessage, port: number, login?: Login): string {
  const value = login?.id ?? ''
  const seconds = login ? loginMs / 1000 : 0
  // Behind a proxy that speaks TLS the browser must never send it in the clear.
  const secure = request.headers.origin?.startsWith('https://') ? '; Secure' : ''
  return `${nameOn(port)}=${value}; Path=/admin/api; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}

/**
 * A browser sends a cookie along whoever asks it to. Only a page of ours can set a header of its own, and where the
 * browser says which page asked, it must be ours: to SameSite, all of localhost is one site.
 */
export function checkOurPage({ method, headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    throw refused('Only the dashboard itself may use its cookie: another page asked for this.')
  }
  if (method !== 'GET' && method !== 'HEAD' && headers['toolway-admin'] !== '1') {
    throw refused('With a cookie, whatever changes something needs the header "Toolway-Admin: 1".')
  }
}

const refused = (sentence: string) => Refusal.of('DENIED_BY_POLICY', sentence, { rule: 'admin.csrf' })
