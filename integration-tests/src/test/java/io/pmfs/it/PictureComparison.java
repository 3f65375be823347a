package io.pmfs.it;

import java.awt.image.BufferedImage;

/**
 * How far two pictures differ. Two pixels differ if a colour of theirs differs by more than {@link
 * #STEP} of 255.
 *
 * @param percent of all pixels, those that differ; 100 if the pictures have different sizes
 * @param worstPercent the same in the square where most differ
 * @param difference the expected picture, faint, with the pixels that differ in red
 */
record PictureComparison(double percent, double worstPercent, BufferedImage difference) {
  private static final int STEP = 6; // less than between the background and a card on it
  private static final int SQUARE = 64;

  static PictureComparison of(BufferedImage expected, BufferedImage actual) {
    int width = expected.getWidth();
    int height = expected.getHeight();
    if (actual.getWidth() != width || actual.getHeight() != height) {
      return new PictureComparison(100, 100, actual);
    }
    BufferedImage difference = new BufferedImage(width, height, BufferedImage.TYPE_INT_RGB);
    long all = 0;
    double worst = 0;
    for (int top = 0; top < height; top += SQUARE) {
      for (int left = 0; left < width; left += SQUARE) {
        int right = Math.min(width, left + SQUARE);
        int bottom = Math.min(height, top + SQUARE);
        long here = 0;
        for (int y = top; y < bottom; y++) {
          for (int x = left; x < right; x++) {
            boolean differs = differs(expected.getRGB(x, y), actual.getRGB(x, y));
            here += differs ? 1 : 0;
            difference.setRGB(x, y, differs ? 0xe00000 : faint(expected.getRGB(x, y)));
          }
        }
        all += here;
        worst = Math.max(worst, 100.0 * here / (right - left) / (bottom - top));
      }
    }
    return new PictureComparison(100.0 * all / width / height, worst, difference);
  }

  private static boolean differs(int one, int other) {
    for (int shift = 0; shift <= 16; shift += 8) {
      if (Math.abs((one >> shift & 255) - (other >> shift & 255)) > STEP) {
        return true;
      }
    }
    return false;
  }

  private static int faint(int rgb) {
    return 0xc0c0c0 + (rgb >> 2 & 0x3f3f3f);
  }
}
