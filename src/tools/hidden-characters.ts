/**
 * Characters that move the cursor, change the writing direction or have no width. People cannot see them, but models
 * read them. Joiners and variation selectors are kept where scripts and emoji need them.
 */
const hidden = new RegExp(
  [
    // ESC, together with the terminal sequence that it begins, if that sequence is valid.
    String.raw`\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)?|[ -/]{0,8}[0-~])?`,
    String.raw`\r(?=\n)`,
    String.raw`[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]`,
    // Direction marks, zero-width characters, fillers, interlinear annotations and tag characters.
    String.raw`[\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]`,
    String.raw`[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]`,
    String.raw`(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\p{M}\p{scx=Arab}\p{scx=Syrc}\p{scx=Mong}\p{scx=Deva}\p{scx=Beng}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}])[\u200c\u200d]`,
    String.raw`(?<![\p{Emoji}\p{S}\p{Po}\p{Ideographic}\p{scx=Mong}])[\ufe00-\ufe0f]`,
  ].join('|'),
  'gu',
)

/** Removes hidden characters, but keeps line breaks and tabs. Takes time linear in the length of the text. */
export const withoutHidden = (text: string): string => text.replace(hidden, '')
