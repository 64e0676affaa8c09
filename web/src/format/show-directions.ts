/** Characters that change the direction of the text after them; browsers do not show them. */
const directions = /[\u202a-\u202e\u2066-\u2069]/g

/**
 * Foreign text with its direction controls spelt out as `\u{202e}`: with them, `gnp.exe` can look like `exe.png`. Other
 * invisible characters stay, because emoji and many scripts need them.
 */
export const showDirections = (text: string): string =>
  text.replace(directions, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`)
