/** An address that a URL may be fetched from. */
export interface VettedAddress {
  readonly address: string
  readonly family: number
}

/**
 * Checks a URL and finds the addresses to connect to; to no others, since its name may lead elsewhere by then. What it
 * throws says why not, to go on from "The URL …".
 */
export type Vet = (url: string) => Promise<{ readonly url: URL; readonly addresses: readonly VettedAddress[] }>
