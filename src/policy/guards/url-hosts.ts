/** Endings that only ever mean something on the inside. */
const internal = [
  'localhost',
  'localdomain',
  'local',
  'internal',
  'intranet',
  'lan',
  'home',
  'corp',
  'private',
  'home.arpa',
]

/** Where clouds give out credentials to whoever asks from inside. */
const metadata = [
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
  'metadata',
]

/** What a host's name alone tells, before it is looked up. */
export function placeOfName(host: string): 'public' | 'private' | 'reserved' {
  const name = host.toLowerCase().replace(/\.+$/, '')
  if (metadata.includes(name)) return 'reserved'
  // A name without a dot is completed by the search list of whoever looks it up.
  const inside = !name.includes('.') || internal.some((ending) => name.endsWith(`.${ending}`))
  return inside ? 'private' : 'public'
}
