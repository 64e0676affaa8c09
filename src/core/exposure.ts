/** Which tools an agent is shown: all tools, only the meta-tools, both, or the code mode tools (B3). */
export type Exposure = 'direct' | 'meta' | 'both' | 'code'

/** An exposure mode, or `auto`: all tools while their definitions are short, otherwise the meta-tools (V14). */
export type ExposureSetting = Exposure | 'auto'

export const exposures: readonly Exposure[] = ['direct', 'meta', 'both', 'code']
