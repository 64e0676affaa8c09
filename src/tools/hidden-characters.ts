/**
 * What moves a cursor, turns the direction of writing or takes no room: a reader would not know that it is there, and
 * a model would read it. Joiners and selectors stay where scripts and emoji are written with them.
 */
const hidden = new RegExp(
  [
    // ESC and the whole of a terminal's sequence that begins with it, as far as it is one.
    String.raw`\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)?|[ -/]{0,8}[0-~])?`,
    String.raw`\r(?=\n)`,
    String.raw`[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]`,
    // Directions, zero widths, fillers, notes between lines, and tags.
    String.raw`[\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]`,
    String.raw`[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]`,
    String.raw`(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\p{M}\p{scx=Arab}\p{scx=Syrc}\p{scx=Mong}\p{scx=Deva}\p{scx=Beng}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}])[\u200c\u200d]`,
    String.raw`(?<![\p{Emoji}\p{S}\p{Po}\p{Ideographic}\p{scx=Mong}])[\ufe00-\ufe0f]`,
  ].join('|'),
  'gu',
)

/** A text without its hidden characters; lines and tabs stay. Linear in its length. */
export const withoutHidden = (text: string): string => text.replace(hidden, '')
