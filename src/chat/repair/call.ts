/** `ObjectId(`, `new Date(`, `Decimal(`: what is in the brackets is what counts. */
const call = /(?:new\s{1,4})?[A-Za-z_$][\w$.]{0,63}\(/y

/** The length of a call's name and its opening bracket, if one begins here. */
export function callHead(text: string, at: number): number {
  call.lastIndex = at
  return call.exec(text)?.[0].length ?? 0
}

/** `u'…'`, `b"…"`, `rb'…'` */
const prefix = /[uUbBrRfF]{1,2}(?=["'])/y

/** The length of what stands before a string's quote in other languages. */
export function prefixLength(text: string, at: number): number {
  prefix.lastIndex = at
  return prefix.exec(text)?.[0].length ?? 0
}
