/** The instructions of a Dockerfile, as far as this project uses them. */

export interface Instruction {
  readonly name:
    | 'ARG'
    | 'FROM'
    | 'WORKDIR'
    | 'COPY'
    | 'RUN'
    | 'ENV'
    | 'USER'
    | 'ENTRYPOINT'
    | 'CMD'
    | 'HEALTHCHECK';
  readonly text: string;
}

export interface Stage {
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

const KNOWN = ['ARG', 'FROM', 'WORKDIR', 'COPY', 'RUN', 'ENV', 'USER', 'ENTRYPOINT', 'CMD', 'HEALTHCHECK'];
/** They say something to those who run the image, and change nothing in it. */
const WITHOUT_EFFECT = ['EXPOSE', 'STOPSIGNAL'];

/** @throws if it has an instruction that is not known here */
export function stagesOf(dockerfile: string): Stage[] {
  const lines = dockerfile
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'))
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const stages: { name: string | undefined; instructions: Instruction[] }[] = [];
  for (const line of lines) {
    const [, name = '', text = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? [];
    if (WITHOUT_EFFECT.includes(name)) continue;
    if (!KNOWN.includes(name)) throw new Error(`the test of the image does not know ${line}`);
    if (name === 'FROM') stages.push({ name: / AS (\S+)$/.exec(text)?.[1], instructions: [] });
    else stages.at(-1)?.instructions.push({ name, text } as Instruction);
  }
  return stages;
}
